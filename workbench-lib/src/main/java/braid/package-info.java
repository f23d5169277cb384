/// What a notebook says: process groups, symmetric tensors, overlapped pipelines, profiles and the
/// tuner.
@NullMarked
package braid;

import org.jspecify.annotations.NullMarked;
