version = "0.0.0"  # a release writes its own
