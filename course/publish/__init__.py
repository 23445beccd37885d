"""The course without running it: slide decks (`make slides`), a website (`make site`), a book."""
