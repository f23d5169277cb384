/// Entry points: process groups, tensors, pipelines, collectives and the tuner.
@NullMarked
package braid;

import org.jspecify.annotations.NullMarked;
