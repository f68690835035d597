"""Tests that run what the pages say."""
