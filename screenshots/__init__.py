"""Pictures of the running product, and the script that makes them."""
