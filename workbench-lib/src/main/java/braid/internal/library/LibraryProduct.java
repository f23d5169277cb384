package braid.internal.library;

import braid.internal.work.Matrix;
import braid.model.Collective;

/// A multiplication and a collective that a library runs as one call, the same on all ranks.
///
/// @param collective of the input, if it gathers, else of the product
/// @param input of this rank: its part, if the library gathers
/// @param output of this rank
/// @param workers multiprocessors that communicate; 0 for the library's choice
public record LibraryProduct(
    Collective collective, Matrix input, Matrix weight, Matrix output, int workers) {}
