"""Bring the course to a machine: install, Google Colab, and finding what is wrong with a set-up."""
