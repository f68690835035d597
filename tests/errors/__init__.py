"""What a user's mistakes look like: one test for each."""
