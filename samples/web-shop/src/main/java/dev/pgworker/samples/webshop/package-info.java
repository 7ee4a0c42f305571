/** A small shop with JPA: what an order entails are jobs that are added with it. */
@NullMarked
package dev.pgworker.samples.webshop;

import org.jspecify.annotations.NullMarked;
