"""The ports: Protocols that passes are written against and adapters fill; one module a port."""
