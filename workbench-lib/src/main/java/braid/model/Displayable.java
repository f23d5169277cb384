package braid.model;

/// A value that knows how to show itself in a notebook; what has no such form is shown by its
/// `toString`.
public interface Displayable {
  MimeBundle display();
}
