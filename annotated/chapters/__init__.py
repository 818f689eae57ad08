"""What one chapter alone uses: drawings, training, exercises, scripts."""
