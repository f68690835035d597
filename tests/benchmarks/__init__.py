"""Tests of the measuring core."""
