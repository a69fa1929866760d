"""The pytest plugin of tinyagents; pytest loads it wherever tinyagents is installed."""
