"""What a GPU can do at most, resource by resource: the constants that an estimate divides by."""
