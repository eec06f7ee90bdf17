"""How a dashboard's panels are drawn from data, as a page with inline SVG. Knows no Prometheus and no browser (see `screenshots.py`)."""
