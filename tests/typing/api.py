"""What a user's type checker infers: checked by mypy and pyright, never run."""
