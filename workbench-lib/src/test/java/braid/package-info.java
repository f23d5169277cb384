@org.jspecify.annotations.NullMarked
package braid;
