"""What pages and their recorded runs train, by subject; chapters in the first lines."""
