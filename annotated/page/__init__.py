"""What a page is made of: its set-up, statements, figures and explorers."""
