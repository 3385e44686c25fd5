"""What the papers print and claim, what was found of it, and the rules that decide claims."""
