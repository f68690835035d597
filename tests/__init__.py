"""Tests, one folder a room; `tests/structure` judges the house rules, `tests/docs` the pages."""
