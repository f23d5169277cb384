package braid.internal.resource;

/// What a kind of memory keeps with each piece of it, such as a window that a library has of it.
/// Only the backend that made the memory knows what it is; it ends with the memory.
public interface Attachment {}
