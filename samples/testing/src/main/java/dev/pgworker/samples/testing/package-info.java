/** An application that confirms orders in jobs; its tests are what to look at. */
@NullMarked
package dev.pgworker.samples.testing;

import org.jspecify.annotations.NullMarked;
