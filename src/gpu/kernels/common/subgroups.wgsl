// Subgroup operations.
enable subgroups;
