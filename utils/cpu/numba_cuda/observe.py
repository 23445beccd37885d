"""Hooks for tools that want to see every access: see README.md."""
