//! ZooKeeper's formats: bytes to types and back, for clients, peers and disk.
