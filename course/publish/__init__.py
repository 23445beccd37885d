"""The course without running it: slide decks (`make slides`) and a website (`make site`)."""
