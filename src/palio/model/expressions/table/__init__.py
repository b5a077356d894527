"""The table of functions: what each is called in SQL, takes, means and computes, one file for a family."""
