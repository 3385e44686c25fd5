"""What the papers print and claim, what was found about it, and the rules that decide claims."""
