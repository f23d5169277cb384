package braid.internal.resource;

/// State that a kind of memory keeps with each allocation, such as a library's window. Opaque to
/// all but the backend that allocated the memory; closed with the memory.
public interface Attachment {}
