"""What the chapters draw: one module a chapter, with the chapter's name."""
