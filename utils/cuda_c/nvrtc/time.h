// clock() is there without it.
