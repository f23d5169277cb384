package braid;

import java.util.Locale;

/// What moves the bytes.
public enum Transport {
  /// Copy engines read the peers' symmetric memory; no compute unit takes part.
  COPY_ENGINE;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
