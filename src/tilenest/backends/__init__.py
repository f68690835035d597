"""The folder of the target rooms; each is used through its own face."""
