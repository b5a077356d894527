"""The model: values, messages, predicates, the language, covering and reduction.

Pure values and functions; nothing here knows of tables, networks or Spark.
"""
