"""The package's own tests run where it is installed: tests/course/extensions sees to that."""

collect_ignore_glob = ["package/*"]
