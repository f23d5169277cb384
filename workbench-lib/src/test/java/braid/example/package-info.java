/// A program that uses Braid as a library, without notebooks.
@NullMarked
package braid.example;

import org.jspecify.annotations.NullMarked;
