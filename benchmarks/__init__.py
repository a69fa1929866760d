"""What tinyagents costs on top of a bare asyncio loop; see ``run.py``."""
