"""What reads the exports of apps and services: one small file each, found as plug-ins."""
