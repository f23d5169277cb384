package braid.launcher.rank;

import braid.Displayable;
import braid.MimeBundle;
import org.jspecify.annotations.Nullable;

/// Gives a value every form it can be shown in.
final class Values {
  private Values() {}

  static MimeBundle render(@Nullable Object value, String plain) {
    return switch (value) {
      case Displayable displayable -> displayable.display();
      case null, default -> MimeBundle.text(plain);
    };
  }
}
