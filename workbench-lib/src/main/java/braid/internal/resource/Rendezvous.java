package braid.internal.resource;

import braid.model.Place;
import java.util.List;
import java.util.stream.IntStream;

/// How the members of a group set something up together.
public interface Rendezvous {
  Place place();

  /// The members' ranks in the world, by which messages call them.
  default List<Integer> ranks() {
    return IntStream.range(0, place().size()).boxed().toList();
  }

  /// A name that no other set-up has, the same on all members.
  String unique();

  /// Every member's value. Labels must agree, so what must be the same on all members belongs into
  /// the label.
  List<String> exchange(String label, String value);
}
