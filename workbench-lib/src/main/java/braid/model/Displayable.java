package braid.model;

/// A value that renders itself in a notebook; other values are shown by `toString`.
public interface Displayable {
  MimeBundle display();
}
