package braid.internal.backend;

/// A point in a stream's work that other streams of this rank can wait for.
public interface Event {}
