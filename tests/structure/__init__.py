"""The house rules that a linter has no rule for; they run on whatever files exist."""
