"""The files that make curatord a service of systemd, launchd or a container engine, as text out of facts."""
