package braid.internal.resource;

import braid.model.Place;
import java.util.List;
import java.util.stream.IntStream;

/// Exchange of values by which the members of a group set something up together.
public interface Rendezvous {
  Place place();

  /// Ranks of the members in the world, for messages.
  default List<Integer> ranks() {
    return IntStream.range(0, place().size()).boxed().toList();
  }

  /// Name of this set-up, unique and the same on all members.
  String unique();

  /// Returns every member's value. Labels must agree, so a value that must be the same on all
  /// members belongs into the label.
  List<String> exchange(String label, String value);
}
