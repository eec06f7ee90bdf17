"""The one source of the dashboard, the rules and their tests. `generate.py` writes them; nothing here reads the clock."""
