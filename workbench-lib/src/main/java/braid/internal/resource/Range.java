package braid.internal.resource;

/// Summary of many numbers.
///
/// @param largest largest absolute value; not finite if any number is not
/// @param integers true if all numbers are integers
public record Range(double largest, boolean integers) {}
