package braid;

/// Something that a [Chain] runs: a pipeline, or another chain.
public sealed interface Chainable permits Pipeline, Chain {
  ProcessGroup group();
}
