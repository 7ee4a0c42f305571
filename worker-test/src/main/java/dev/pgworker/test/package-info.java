/** Runs the jobs of an application under test, and asserts which were added. */
@NullMarked
package dev.pgworker.test;

import org.jspecify.annotations.NullMarked;
