"""The course for reading and presenting without running it: slide decks (`make slides`) and a
website (`make site`).
"""
