"""SSH transport, bootstrap, sessions with resume and backoff, the local socket. Never imports console.state."""
