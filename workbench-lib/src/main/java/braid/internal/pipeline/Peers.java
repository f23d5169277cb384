package braid.internal.pipeline;

import braid.model.Place;
import java.util.function.DoubleFunction;

/// The group of a pipeline, as far as plain work needs it.
///
/// @param barrier waits until every member has come there
/// @param gather every member's number, by rank, on every member
public record Peers(Place place, Runnable barrier, DoubleFunction<double[]> gather) {}
